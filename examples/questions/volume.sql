-- How much came each day of the last week, and how much of it was repeated or bad?
SELECT
  date,
  COUNT(DISTINCT `table`) AS tables,
  SUM(Bundles) AS bundles,
  ROUND(SUM(PackedBytes) / 1e9, 3) AS packed_gb,
  SUM(RowsLoaded) AS loaded,
  SUM(RowsRejected) AS rejected,
  SUM(RowsRepeated) AS repeated
FROM jostler.days
WHERE date >= DATE_SUB(CURRENT_DATE(), INTERVAL 7 DAY)
GROUP BY date
ORDER BY date
