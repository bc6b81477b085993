-- What did audits of the last month find, what of it was mended, and who deleted data?
SELECT
  Experiment AS experiment,
  Datatype AS datatype,
  Command AS command,
  IFNULL(Kind, '') AS kind,
  COUNTIF(Status IN ('found', 'begun')) AS found_or_begun,
  COUNTIF(Status IN ('mended', 'done')) AS mended_or_done,
  MAX(Time) AS last_time,
  ANY_VALUE(Who) AS who
FROM jostler.audits
WHERE Time >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 30 DAY)
GROUP BY experiment, datatype, command, kind
ORDER BY experiment, datatype, command, kind
