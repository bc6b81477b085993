-- How many files of each datatype arrived: as rows, and refused?
WITH
  loaded AS (
    SELECT 'ping1' AS datatype, COUNT(*) AS n, COUNT(DISTINCT archiver.Filename) AS files
    FROM demo_raw.ping1
    WHERE date > '2000-01-01'
    UNION ALL
    SELECT 'speed1' AS datatype, COUNT(*) AS n, COUNT(DISTINCT archiver.Filename) AS files
    FROM demo_raw.speed1
    WHERE date > '2000-01-01'
  ),
  refused AS (
    SELECT raw.Datatype AS datatype, COUNT(*) AS n
    FROM demo_raw.rejected1
    WHERE date > '2000-01-01'
    GROUP BY datatype
  )
SELECT loaded.datatype AS datatype, loaded.n AS loaded, loaded.files, IFNULL(refused.n, 0) AS rejected
FROM loaded
LEFT JOIN refused ON refused.datatype = loaded.datatype
ORDER BY datatype
