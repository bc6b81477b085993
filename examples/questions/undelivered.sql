-- Who was not told, of what, and why?  Events that wait, or that nobody took for a week.
WITH newest AS (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY EventID, Receiver ORDER BY Written DESC, Tries DESC) AS nth
  FROM jostler.notifications
  WHERE State != 'subscribed'
)
SELECT Address AS address, State AS state, COUNT(*) AS events, MIN(Recorded) AS since, MAX(Tries) AS tries, ANY_VALUE(Error) AS why
FROM newest
WHERE nth = 1 AND State != 'delivered'
GROUP BY address, state
ORDER BY events DESC, address
