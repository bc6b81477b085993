-- How fast are downloads in each country?
SELECT
  raw.Client.Country AS country,
  COUNT(*) AS tests,
  ROUND(AVG(raw.Rate), 1) AS mean_mbps,
  ROUND(MAX(raw.Rate), 1) AS best_mbps,
  COUNTIF(raw.Congested) AS congested
FROM demo_raw.speed1
WHERE date >= DATE_SUB(CURRENT_DATE(), INTERVAL 7 DAY) AND raw.Direction = 'download'
GROUP BY country
ORDER BY mean_mbps DESC
