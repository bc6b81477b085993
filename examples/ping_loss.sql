-- Which targets lose packets, day by day?
SELECT
  date,
  raw.Target AS target,
  COUNT(*) AS runs,
  SUM(raw.Sent) AS sent,
  SUM(raw.Sent - raw.Received) AS lost,
  ROUND(100 * SAFE_DIVIDE(SUM(raw.Sent - raw.Received), SUM(raw.Sent)), 2) AS lost_percent
FROM demo_raw.ping1
WHERE date >= DATE_SUB(CURRENT_DATE(), INTERVAL 7 DAY)
GROUP BY date, target
ORDER BY date, target
