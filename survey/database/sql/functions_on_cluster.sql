-- Functions of the migrations as Citus can plan them: in PL/pgSQL, with one person's row
-- locked by each statement, and tables of the coordinator read before those in shards.
-- Owners and grants stay. Above each is the MD5 of the body that it was written from: a
-- test compares it with that of the database, and what both functions do.

-- Locks people whom nobody else has locked, and their shards against moving.
CREATE OR REPLACE FUNCTION public.survey_lock_people(people bigint[])
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    person bigint;
    locked bigint[] := '{}';
BEGIN
    FOREACH person IN ARRAY people LOOP
        PERFORM public.survey_hold_shard(
            get_shard_id_for_distribution_column('public.survey_respondent', person));
        PERFORM FROM public.survey_respondent r WHERE r.id = person FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            locked := locked || person;
        END IF;
    END LOOP;
    RETURN locked;
END $$;
ALTER FUNCTION public.survey_lock_people(bigint[]) OWNER TO groundswell;
REVOKE ALL ON FUNCTION public.survey_lock_people(bigint[]) FROM PUBLIC;

-- Returns those of some people who have no answer.
CREATE OR REPLACE FUNCTION public.survey_without_answers(of_administration bigint, people bigint[])
RETURNS bigint[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN array(
        SELECT unnest(people)
        EXCEPT SELECT public.survey_answered_people(of_administration, people)
        ORDER BY 1
    );
END $$;
ALTER FUNCTION public.survey_without_answers(bigint, bigint[]) OWNER TO groundswell;
REVOKE ALL ON FUNCTION public.survey_without_answers(bigint, bigint[]) FROM PUBLIC;

-- In place of the body 6735b04e14d0ac68e467e4967564d110, of migration 0004.
CREATE OR REPLACE FUNCTION public.survey_answered_people(of_administration bigint, people bigint[])
RETURNS SETOF bigint
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY SELECT DISTINCT x.respondent_id FROM public.survey_response x
    WHERE x.administration_id = of_administration AND x.respondent_id = ANY (people);
END $$;

-- In place of the body 18c1e95b3577bb1142fe74d1de91095a, of migration 0004.
CREATE OR REPLACE FUNCTION public.survey_answered_starts(code bigint)
RETURNS bigint
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT count(*) FROM public.survey_respondent r
        WHERE r.open_code_id = code AND EXISTS (
            SELECT FROM public.survey_response x
            WHERE x.administration_id = r.administration_id AND x.respondent_id = r.id
        )
    );
END $$;

-- In place of the body 494b16b83278fd6e4a2d997129e1e504, of migration 0004.
CREATE OR REPLACE FUNCTION public.survey_answered_in_crowd(code bigint, period bigint)
RETURNS bigint
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    begins CONSTANT timestamptz := to_timestamp(period * 600);
    ends CONSTANT timestamptz := to_timestamp(period * 600 + 600);
    starts bigint;
BEGIN
    SELECT count(*) INTO starts FROM public.survey_respondent r
    WHERE r.open_code_id = code AND r.started_at >= begins AND r.started_at < ends;
    IF starts < 50 THEN
        RETURN NULL;
    END IF;
    RETURN (
        SELECT count(*) FROM public.survey_respondent r
        WHERE r.open_code_id = code AND r.started_at >= begins AND r.started_at < ends
            AND EXISTS (
                SELECT FROM public.survey_response x
                WHERE x.administration_id = r.administration_id
                    AND x.respondent_id = r.id
            )
    );
END $$;

-- In place of the body 58a5cecf27dd885e31bf6dded2a6d978, of migration 0004.
CREATE OR REPLACE FUNCTION public.survey_read_for_message(person bigint)
RETURNS TABLE (
    administration_id bigint,
    district_id bigint,
    language text,
    school text,
    is_finished boolean,
    is_stopped boolean,
    name text,
    opens_at timestamptz,
    closes_at timestamptz,
    has_names boolean,
    has_codes boolean,
    first_language text
)
LANGUAGE plpgsql
STABLE
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    r record;
BEGIN
    SELECT p.administration_id, p.school_id, p.language, p.completed_at, p.withdrawn_at INTO r
    FROM public.survey_respondent p WHERE p.id = person AND p.open_code_id IS NULL;
    RETURN QUERY SELECT a.id, s.district_id, r.language::text, s.name::text,
        r.completed_at IS NOT NULL,
        r.withdrawn_at IS NOT NULL OR i.email ~ '[^ -~]' OR EXISTS (
            SELECT FROM public.survey_suppressedaddress x
            WHERE x.digest = encode(sha256(convert_to(lower(i.email), 'UTF8')), 'hex')
              AND x.reason IN ('opted out', 'complained')),
        CASE WHEN a.messages_have_names THEN i.given_name ELSE '' END::text,
        a.opens_at, a.closes_at, a.messages_have_names, a.messages_have_codes,
        p.definition::json -> 'languages' -> 0 ->> 'code'
    FROM public.survey_identity i
    JOIN public.survey_administration a ON a.id = r.administration_id
    JOIN public.survey_publishedsurvey p ON p.digest = a.published_id
    JOIN public.accounts_school s ON s.id = r.school_id
    WHERE i.respondent_id = person;
END $$;

-- In place of the body 4d3678abb7947534cac0b1d7057f57be, of migration 0004.
CREATE OR REPLACE FUNCTION public.survey_return_seats(claimed_before timestamptz)
RETURNS integer
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    people bigint[];
BEGIN
    WITH seat AS MATERIALIZED (
        SELECT s.respondent_id FROM public.survey_opencodeseat s
        WHERE s.claimed_at < claimed_before
    )
    SELECT array_agg(old.id ORDER BY old.id) INTO people FROM (
        SELECT r.id
        FROM public.survey_respondent r JOIN seat ON seat.respondent_id = r.id
        WHERE NOT EXISTS (
            SELECT FROM public.survey_response x
            WHERE x.administration_id = r.administration_id AND x.respondent_id = r.id
        )
        LIMIT 1000
    ) old;
    people := public.survey_lock_people(coalesce(people, '{}'));
    SELECT array_agg(r.id) INTO people
    FROM public.survey_respondent r
    WHERE r.id = ANY (people) AND NOT EXISTS (
        SELECT FROM public.survey_response x
        WHERE x.administration_id = r.administration_id AND x.respondent_id = r.id
    );
    UPDATE public.survey_respondent SET withdrawn_at = now()
    WHERE id = ANY (people) AND withdrawn_at IS NULL;
    UPDATE public.survey_opencodeseat SET respondent_id = NULL, claimed_at = NULL
    WHERE respondent_id = ANY (people);
    RETURN coalesce(cardinality(people), 0);
END $$;

-- In place of the body 42c64f4c7ad27359cd12525e052c5430, of migration 0004.
CREATE OR REPLACE FUNCTION public.survey_delete_empty_starts(
    of_administration bigint, closed_before timestamptz, after bigint, most integer,
    OUT deleted integer, OUT last bigint
)
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    people bigint[];
    of_code record;
BEGIN
    deleted := 0;
    -- Citus refuses to write tables that foreign keys connect over parallel connections.
    PERFORM set_config('citus.multi_shard_modify_mode', 'sequential', true);
    PERFORM FROM public.survey_administration a
    WHERE a.id = of_administration
      AND a.closes_at < least(closed_before, now() - interval '7 days')
    FOR SHARE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT max(start.id), coalesce(array_agg(start.id), '{}') INTO last, people
    FROM (
        SELECT r.id FROM public.survey_respondent r
        WHERE r.administration_id = of_administration
          AND r.open_code_id IS NOT NULL AND r.id > after
        ORDER BY r.id LIMIT most
    ) start;
    people := public.survey_lock_people(
        public.survey_without_answers(of_administration, people));
    -- Again, now that nobody saves a first page.
    people := public.survey_without_answers(of_administration, people);
    FOR of_code IN
        SELECT r.open_code_id AS id, count(*) AS starts
        FROM public.survey_respondent r WHERE r.id = ANY (people) GROUP BY 1
    LOOP
        UPDATE public.survey_opencode c
        SET empty_starts_deleted = c.empty_starts_deleted + of_code.starts
        WHERE c.id = of_code.id;
    END LOOP;
    UPDATE public.survey_opencodeseat SET respondent_id = NULL, claimed_at = NULL
    WHERE respondent_id = ANY (people);
    DELETE FROM public.survey_devicelogin WHERE respondent_id = ANY (people);
    DELETE FROM public.survey_respondent WHERE id = ANY (people);
    deleted := cardinality(people);
END $$;

-- Citus plans no query without a column.
-- In place of the body e0f6c063d6025df2dff7f12f6f896a5a, of migration 0002.
CREATE OR REPLACE FUNCTION public.survey_drop_partition(administration bigint)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '100ms'
AS $$
DECLARE
    partition text := 'survey_response_' || administration;
    is_answered boolean;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'one snapshot hides responses that were saved later'
            USING ERRCODE = 'invalid_transaction_state';
    END IF;
    IF EXISTS (SELECT FROM public.survey_administration WHERE id = administration)
    THEN
        RAISE EXCEPTION 'administration % is still there', administration
            USING ERRCODE = 'restrict_violation';
    END IF;
    IF NOT EXISTS (
        SELECT FROM pg_inherits
        JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = 'public.survey_response'::regclass AND relname = partition
    ) THEN
        RAISE EXCEPTION 'administration % has no partition', administration
            USING ERRCODE = 'undefined_table';
    END IF;
    LOCK TABLE ONLY public.survey_response IN ACCESS EXCLUSIVE MODE;
    IF EXISTS (
        SELECT 1 FROM public.survey_respondent WHERE administration_id = administration
    ) THEN
        RAISE EXCEPTION 'administration % has people', administration
            USING ERRCODE = 'restrict_violation';
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM public.%I)', partition)
        INTO is_answered;
    IF is_answered THEN
        RAISE EXCEPTION 'administration % has responses', administration
            USING ERRCODE = 'restrict_violation';
    END IF;
    EXECUTE format('DROP TABLE public.%I', partition);
END $$;
