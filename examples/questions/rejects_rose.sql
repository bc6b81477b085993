-- Which producer's rejects rose?  The fraction of bad rows of this week beside the last one's, and what is wrong most often.
WITH
  weeks AS (
    SELECT
      `table`,
      SUM(IF(date >= DATE_SUB(CURRENT_DATE(), INTERVAL 7 DAY), RowsRead, 0)) AS n_now,
      SUM(IF(date >= DATE_SUB(CURRENT_DATE(), INTERVAL 7 DAY), RowsRejected, 0)) AS bad_now,
      SUM(IF(date < DATE_SUB(CURRENT_DATE(), INTERVAL 7 DAY), RowsRead, 0)) AS n_before,
      SUM(IF(date < DATE_SUB(CURRENT_DATE(), INTERVAL 7 DAY), RowsRejected, 0)) AS bad_before
    FROM jostler.days
    WHERE date >= DATE_SUB(CURRENT_DATE(), INTERVAL 14 DAY)
    GROUP BY `table`
  ),
  counted AS (
    SELECT `table`, Reason, Field, COUNT(*) AS n
    FROM jostler.rejects
    WHERE date >= DATE_SUB(CURRENT_DATE(), INTERVAL 7 DAY)
    GROUP BY `table`, Reason, Field
  ),
  reasons AS (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY `table` ORDER BY n DESC, Reason, Field) AS nth FROM counted
  )
SELECT
  weeks.`table` AS table_name,
  ROUND(SAFE_DIVIDE(bad_now, n_now), 4) AS bad_this_week,
  ROUND(SAFE_DIVIDE(bad_before, n_before), 4) AS bad_last_week,
  reasons.Reason AS reason,
  reasons.Field AS field,
  reasons.n AS times
FROM weeks
LEFT JOIN reasons ON reasons.`table` = weeks.`table` AND reasons.nth = 1
WHERE SAFE_DIVIDE(bad_now, n_now) > IFNULL(SAFE_DIVIDE(bad_before, n_before), 0)
ORDER BY bad_this_week DESC, table_name
