-- How long from file to row this week?  From when an agent read a file to the first load of its day that began later.
-- A load may begin before the file's bundle is stored: then the file comes with the next one, and took longer than this says.
WITH
  files AS (
    SELECT date, raw.Datatype AS datatype, raw.Filename AS filename, raw.TimeAdded AS added
    FROM demo_raw.index1
    WHERE date >= DATE_SUB(CURRENT_DATE(), INTERVAL 7 DAY)
  ),
  loads AS (
    SELECT date, Datatype AS datatype, Started, Finished
    FROM jostler.loads
    WHERE date >= DATE_SUB(CURRENT_DATE(), INTERVAL 7 DAY) AND Experiment = 'demo' AND Status = 'success'
  ),
  arrived AS (
    SELECT files.datatype, files.filename, TIMESTAMP_DIFF(MIN(loads.Finished), files.added, SECOND) AS seconds
    FROM files
    JOIN loads ON loads.date = files.date AND loads.datatype = files.datatype AND loads.Started >= files.added
    GROUP BY files.datatype, files.filename, files.added
  )
SELECT
  datatype,
  COUNT(*) AS files,
  APPROX_QUANTILES(seconds, 100)[OFFSET(50)] AS median_s,
  APPROX_QUANTILES(seconds, 100)[OFFSET(95)] AS p95_s,
  MAX(seconds) AS longest_s
FROM arrived
GROUP BY datatype
ORDER BY p95_s DESC, datatype
