-- Which files were refused, and what should their producer mend?
SELECT
  raw.Datatype AS datatype,
  raw.Reason AS reason,
  COUNT(*) AS files,
  MIN(raw.Field) AS field,
  MIN(raw.Detail) AS detail
FROM demo_raw.rejected1
WHERE date >= DATE_SUB(CURRENT_DATE(), INTERVAL 7 DAY)
GROUP BY datatype, reason
ORDER BY datatype, reason
