-- What did the loader do?  `days` has the newest word on each day of each table.
SELECT
  REGEXP_EXTRACT(`table`, '[^.]+$') AS datatype,
  date,
  Status AS status,
  Bundles AS bundles,
  RowsRead AS `read`,
  RowsLoaded AS loaded,
  RowsRejected AS rejected,
  RowsRepeated AS repeated,
  ROUND(Seconds, 1) AS seconds
FROM jostler.days
ORDER BY datatype, date
