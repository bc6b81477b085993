-- What was loaded because somebody asked for it, and how long did that take?
SELECT
  RequestID AS request,
  MIN(RequestedAt) AS asked,
  COUNT(DISTINCT IF(Status = 'success', FORMAT('%s %t', `table`, date), NULL)) AS days_loaded,
  COUNTIF(Status = 'failed') AS failures,
  SUM(RowsLoaded) AS n_rows,
  TIMESTAMP_DIFF(MAX(IF(Status = 'success', Finished, NULL)), MIN(RequestedAt), SECOND) AS seconds
FROM jostler.loads
WHERE RequestID != ''
GROUP BY request
ORDER BY asked DESC, request
