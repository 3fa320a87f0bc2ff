-- Their districts are numbers that no state has.
DELETE FROM accounts_school WHERE district_id IN (
    SELECT id FROM accounts_district WHERE code ~ '^00[0-9]{5}$'
);
DELETE FROM accounts_district WHERE code ~ '^00[0-9]{5}$';
