-- The respondent of each code that was ever given out: makes codes unique, and a login
-- finds its shard. A route of an older code stays: a login compares the code as well.
CREATE TABLE public.survey_coderoute (
    digest bytea PRIMARY KEY,
    respondent_id bigint NOT NULL
);
ALTER TABLE public.survey_coderoute OWNER TO groundswell;
INSERT INTO public.survey_coderoute SELECT code_digest, id FROM public.survey_respondent;
