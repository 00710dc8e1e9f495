-- What verdicts are made of, narrow enough that a year is read in a blink: the times of the workload's endpoints, as
-- a JSON object by name, in seconds. NULL: none.

ALTER TABLE run ADD COLUMN endpoints TEXT;

-- The runs that are there already, from their figures, as the endpoints were defined on this day.
UPDATE run SET endpoints = (
    SELECT json_group_object(name, seconds) FROM (
        SELECT definition.name, sum(figure.value) AS seconds
        FROM (
            SELECT 'folder-index' AS workload, 'folder-cold' AS name, 'open-folder' AS phase, 'cold' AS cache, 'folder-shown' AS figure, 1 AS parts
            UNION ALL SELECT 'folder-index', 'folder-warm', 'open-folder', 'warm', 'folder-shown', 1
            UNION ALL SELECT 'folder-index', 'walk-cold', 'walk', 'cold', 'walk', 1
            UNION ALL SELECT 'folder-index', 'walk-warm', 'walk', 'warm', 'walk', 1
            UNION ALL SELECT 'photo-batch', 'photos-cold', 'open', 'cold', 'sidebar', 1
            UNION ALL SELECT 'photo-batch', 'photos-warm', 'open', 'warm', 'sidebar', 1
            UNION ALL SELECT 'photo-batch', 'switch-cold', 'browse', 'cold', 'switch-median', 1
            UNION ALL SELECT 'photo-batch', 'switch-warm', 'browse', 'warm', 'switch-median', 1
            UNION ALL SELECT 'incremental-backup', 'backup', 'scan', 'cold', 'scan', 3
            UNION ALL SELECT 'incremental-backup', 'backup', 'copy', 'none', 'copy', 3
            UNION ALL SELECT 'incremental-backup', 'backup', 'delete', 'none', 'delete', 3
            UNION ALL SELECT 'time-machine', 'burst', 'burst', 'none', 'burst', 1
            UNION ALL SELECT 'time-machine', 'restore-cold', 'restore', 'cold', 'restore', 1
            UNION ALL SELECT 'time-machine-throttled', 'burst', 'burst', 'none', 'burst', 1
            UNION ALL SELECT 'time-machine-throttled', 'restore-cold', 'restore', 'cold', 'restore', 1
        ) AS definition
        JOIN phase ON phase.run = run.number AND phase.name = definition.phase AND phase.cache = definition.cache
        JOIN figure ON figure.phase = phase.number AND figure.name = definition.figure AND figure.unit = 's'
        WHERE definition.workload = run.workload
        GROUP BY definition.name
        HAVING count(*) = definition.parts
    )
) WHERE outcome = 'ok';
UPDATE run SET endpoints = NULL WHERE endpoints = '{}';

-- Holds all that a history needs of a run, so that the wide rows themselves stay untouched.
CREATE INDEX run_history ON run
    (number, round, epoch, target, workload, scale, outcome, started_us, seconds, endpoints);
