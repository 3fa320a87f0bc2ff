GRANT SELECT ON public.survey_coderoute TO taking;
GRANT SELECT, INSERT ON public.survey_coderoute TO console, worker;
-- Rosters join their temporary tables with people: Citus reads the people.
ALTER ROLE worker SET citus.local_table_join_policy TO 'prefer-distributed';
ALTER ROLE console SET citus.local_table_join_policy TO 'prefer-distributed';
ALTER ROLE groundswell SET citus.local_table_join_policy TO 'prefer-distributed';
