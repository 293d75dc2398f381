-- Jobs that consist of other jobs. A child knows its parent and which step or trial of it it is; its parent's conductor
-- takes note of each end once.
alter table jobs add column parent integer;
alter table jobs add column step text not null default '';
alter table jobs add column heard integer not null default 0;
create index jobs_by_parent on jobs (parent, seq) where parent is not null;
create index jobs_unheard on jobs (parent, seq) where parent is not null and phase = 'ended' and heard = 0;

-- Lists show jobs that are nobody's children.
drop index jobs_listed;
drop index jobs_by_archive;
create index jobs_listed on jobs (workspace, seq desc) where parent is null;
create index jobs_by_archive on jobs (workspace, archived, seq desc) where parent is null;

-- What leads a parent: its kind's own words, kept from when it was accepted.
create table conductors (
    job_seq integer primary key,
    state text not null,
    version integer not null default 1
);
