-- The runs of a workspace, newest first, whichever experiments they are of.
create index runs_by_start on runs (workspace, started_at desc, run_id);
