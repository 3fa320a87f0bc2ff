-- Their districts are numbers that no state has.
SELECT school_id FROM accounts_schoollisting WHERE district_id IN (
    SELECT id FROM accounts_district WHERE code ~ '^00[0-9]{5}$'
);
