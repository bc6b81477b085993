-- Who loaded what, when?  Each run of the last week: where it ran, what it did.
SELECT
  RunID AS run,
  MIN(Started) AS began,
  MAX(Finished) AS ended,
  ANY_VALUE(Host) AS host,
  ANY_VALUE(Version) AS version,
  COUNT(DISTINCT `table`) AS tables,
  COUNTIF(Status = 'success') AS loaded,
  COUNTIF(Status = 'rejected') AS refused,
  COUNTIF(Status = 'failed') AS failed,
  SUM(RowsLoaded) AS n_rows
FROM jostler.loads
WHERE Finished >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 7 DAY)
GROUP BY run
ORDER BY began DESC, run
