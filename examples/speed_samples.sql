-- How does a transfer go on?  One row for each second, over all samples of all tests.
SELECT
  DIV(sample.ElapsedTime, 1000000) AS second,
  COUNT(*) AS samples,
  COUNT(DISTINCT raw.UUID) AS tests,
  ROUND(AVG(sample.RTT) / 1000, 1) AS mean_rtt_ms,
  MAX(sample.Retransmits) AS most_retransmits
FROM demo_raw.speed1, UNNEST(raw.Samples) AS sample
WHERE date >= DATE_SUB(CURRENT_DATE(), INTERVAL 7 DAY)
GROUP BY second
ORDER BY second
