-- Changes of one week that were made elsewhere, per site and protocol: how many were seen, how late, and how many not at all.
-- Changes through the same client and those without a result say nothing about other machines and are left out.
SELECT site, protocol, count(*) AS changes,
    sum(CASE WHEN outcome = 'seen' THEN 1 ELSE 0 END) AS seen,
    sum(CASE WHEN outcome = 'not-seen' THEN 1 ELSE 0 END) AS not_seen,
    sum(CASE WHEN outcome = 'seen' AND latest_seconds > 1 THEN 1 ELSE 0 END) AS slow,
    {{median_latest}} AS median_latest_seconds
FROM freshness
WHERE week = 'WEEK' AND shares_client = 0 AND outcome <> 'void'
GROUP BY site, protocol
ORDER BY site, protocol;
