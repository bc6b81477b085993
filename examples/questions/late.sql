-- Which datatype is late?  The newest day that each table has, and since when nothing was loaded; the latest first.
SELECT
  `table` AS table_name,
  MAX(IF(Status = 'success', date, NULL)) AS newest_day,
  DATE_DIFF(CURRENT_DATE(), MAX(IF(Status = 'success', date, NULL)), DAY) AS days_behind,
  MAX(IF(Status = 'success', Finished, NULL)) AS last_success,
  COUNTIF(Status != 'success') AS days_not_loaded
FROM jostler.days
GROUP BY table_name
HAVING days_behind IS NULL OR days_behind > 1
ORDER BY days_behind DESC, table_name
