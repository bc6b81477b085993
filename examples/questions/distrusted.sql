-- Whose indexes were not to be trusted, so that whole days had to be read?  And why?
SELECT
  `table` AS table_name,
  Distrusted AS why,
  COUNT(*) AS loads,
  SUM(Verified) AS bundles_read,
  ROUND(AVG(Seconds), 1) AS mean_s,
  MAX(date) AS newest_day
FROM jostler.loads
WHERE Finished >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 7 DAY) AND Distrusted != ''
GROUP BY table_name, why
ORDER BY bundles_read DESC, table_name, why
