-- Which days fail, since when, and whose turn is it?  The newest row of each day that is not loaded.
WITH newest AS (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY `table`, date ORDER BY TableMade DESC, Attempt DESC, Finished DESC) AS nth,
    COUNTIF(Status = 'failed') OVER (PARTITION BY `table`, date) AS failures
  FROM jostler.loads
  WHERE Status != 'skipped' AND date IS NOT NULL
)
SELECT `table` AS table_name, date, Status AS status, FailureClass AS class, failures, ErrorText AS why, Finished AS last_try
FROM newest
WHERE nth = 1 AND Status NOT IN ('success', 'deleted')
ORDER BY class, table_name, date
