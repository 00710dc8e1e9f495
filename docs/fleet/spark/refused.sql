-- Runs that the views leave out, by reason: clocks before 2020 or in the future, impossible durations, files in a folder of
-- another machine. Everything else still counts. Damaged files are found by `longhaul export fleet --check`.
SELECT 'runs' AS table_name, reason, count(*) AS row_count, count(DISTINCT machine) AS machines
FROM (
    SELECT machine, CASE
        WHEN source <> machine THEN 'copied from another machine'
        WHEN started_us < 1577836800000000 THEN 'clock before 2020'
        WHEN started_us > (unix_micros(current_timestamp()) + 86400000000) THEN 'clock in the future'
        WHEN seconds < 0 OR isnan(seconds) THEN 'impossible duration'
    END AS reason
    FROM all_runs
) AS checked
WHERE reason IS NOT NULL
GROUP BY reason
ORDER BY reason;
