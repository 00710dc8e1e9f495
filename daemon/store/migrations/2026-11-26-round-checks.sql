-- Time that the checks after the runs of a round took: freshness and fidelity. It counts in the time budget.
ALTER TABLE round ADD COLUMN checks_us INTEGER; -- NULL: nothing was checked
