-- Outcomes of the runs of one week, per site and protocol. Unavailable and void runs are no failures of a target.
SELECT site, protocol, count(DISTINCT substr(source, 1, 16)) AS machines, count(*) AS runs,
    sum(CASE WHEN outcome = 'ok' THEN 1 ELSE 0 END) AS ok,
    sum(CASE WHEN outcome = 'error' THEN 1 ELSE 0 END) AS failed,
    sum(CASE WHEN outcome = 'hung' THEN 1 ELSE 0 END) AS hung,
    sum(CASE WHEN outcome = 'unavailable' THEN 1 ELSE 0 END) AS unavailable,
    sum(CASE WHEN outcome = 'void' THEN 1 ELSE 0 END) AS void_runs
FROM runs
WHERE week = 'WEEK'
GROUP BY site, protocol
ORDER BY site, protocol;
