-- Views of a collection that `longhaul export fleet` wrote. FLEET is its folder{{or_bucket}}; replace it before running this.
-- The views leave out rows that cannot be right; refused.sql counts them by reason.
{{settings}}
{{sources}}
CREATE {{view}} rounds AS SELECT * FROM all_rounds
WHERE source = machine AND started_us >= 1577836800000000 AND started_us <= {{tomorrow_us}};

CREATE {{view}} runs AS SELECT * FROM all_runs
WHERE source = machine AND started_us >= 1577836800000000 AND started_us <= {{tomorrow_us}}
    AND seconds >= 0 AND NOT {{seconds_is_nan}};

CREATE {{view}} readings AS SELECT * FROM all_readings
WHERE source = machine AND day >= 18262 AND day <= {{tomorrow_us}} / 86400000000
    AND (seconds IS NULL OR (seconds > 0 AND NOT {{seconds_is_nan}}));

CREATE {{view}} operations AS SELECT * FROM all_operations
WHERE source = machine AND started_us >= 1577836800000000 AND started_us <= {{tomorrow_us}};

CREATE {{view}} samples AS SELECT * FROM all_samples
WHERE source = machine AND at_us >= 1577836800000000 AND at_us <= {{tomorrow_us}};

CREATE {{view}} events AS SELECT * FROM all_events
WHERE source = machine AND at_us >= 1577836800000000 AND at_us <= {{tomorrow_us}};

CREATE {{view}} freshness AS SELECT * FROM all_freshness
WHERE source = machine AND at_us >= 1577836800000000 AND at_us <= {{tomorrow_us}};

CREATE {{view}} integrity AS SELECT * FROM all_integrity WHERE source = machine AND bytes >= 0;
