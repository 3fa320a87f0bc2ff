-- Two ways to count starts that the product does not have, for comparison. They are
-- added to its own statement: one writes the code's row at each start, the other
-- takes a seat from a counter that all starts with the code share.
SET lock_timeout = '5s';
DROP SCHEMA IF EXISTS bench_open_codes CASCADE;
CREATE SCHEMA bench_open_codes;
CREATE TABLE bench_open_codes.counter (open_code_id bigint PRIMARY KEY, seats integer);
INSERT INTO bench_open_codes.counter
SELECT id, :seats FROM survey_opencode WHERE id = :counter;
CREATE FUNCTION bench_open_codes.write_code() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
BEGIN
    UPDATE survey_opencode SET label = label WHERE id = NEW.open_code_id;
    RETURN NEW;
END $$;
CREATE FUNCTION bench_open_codes.take_seat() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = bench_open_codes AS $$
BEGIN
    UPDATE counter SET seats = seats - 1
    WHERE open_code_id = NEW.open_code_id AND seats > 0;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER bench_write_code BEFORE INSERT ON survey_respondent FOR EACH ROW
WHEN (NEW.open_code_id = :naive) EXECUTE FUNCTION bench_open_codes.write_code();
CREATE TRIGGER bench_take_seat BEFORE INSERT ON survey_respondent FOR EACH ROW
WHEN (NEW.open_code_id = :counter) EXECUTE FUNCTION bench_open_codes.take_seat();
