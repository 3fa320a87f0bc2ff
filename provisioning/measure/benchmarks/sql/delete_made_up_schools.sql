-- Their districts are numbers that no state has. The roll-up counts each school every
-- minute, so it waits until they are gone.
BEGIN;
LOCK TABLE reports_schoolrate IN SHARE ROW EXCLUSIVE MODE;
CREATE TEMPORARY TABLE made_up ON COMMIT DROP AS
    SELECT id FROM accounts_school WHERE district_id IN (
        SELECT id FROM accounts_district WHERE code ~ '^00[0-9]{5}$'
    );
DELETE FROM reports_schoolrate WHERE school_id IN (SELECT id FROM made_up);
DELETE FROM accounts_school WHERE id IN (SELECT id FROM made_up);
DELETE FROM accounts_district WHERE code ~ '^00[0-9]{5}$';
COMMIT;
