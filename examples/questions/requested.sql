-- Who asked for days to be loaded, what came of it, and how long did it take?
WITH loads AS (
  SELECT RequestID, SUM(RowsLoaded) AS n_rows, MAX(IF(Status = 'success', Finished, NULL)) AS ended
  FROM jostler.loads
  WHERE RequestID != ''
  GROUP BY RequestID
)
SELECT
  r.RequestID AS request,
  r.RequestedBy AS who,
  r.RequestedAt AS asked,
  r.Experiment AS experiment,
  r.Datatype AS datatype,
  r.Reason AS reason,
  r.State AS state,
  r.DaysDone AS days_done,
  r.DaysAsked AS days_asked,
  loads.n_rows,
  TIMESTAMP_DIFF(loads.ended, r.RequestedAt, SECOND) AS seconds,
  r.Error AS error
FROM jostler.request_status AS r
LEFT JOIN loads ON loads.RequestID = r.RequestID
ORDER BY asked DESC, request
