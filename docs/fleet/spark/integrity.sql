-- Data of one week that was read back and compared with what was written, and wrong ranges, per site and protocol.
SELECT site, protocol, count(DISTINCT substr(source, 1, 16)) AS machines, sum(bytes) AS bytes, sum(wire_bytes) AS wire_bytes,
    sum(files) AS files, sum(mismatches) AS mismatches
FROM integrity
WHERE week = 'WEEK'
GROUP BY site, protocol
ORDER BY site, protocol;
