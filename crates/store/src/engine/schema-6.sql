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

-- The job that an earlier one stands for has that one's name here; its logs and outputs are that one's.
alter table jobs add column reused text;

-- What makes two jobs alike: a digest of all fields that matter, and each field. A lineage is the same step of the same
-- kind of pipeline, run after run.
create table likenesses (
    job_seq integer primary key,
    workspace text not null,
    digest text not null,
    lineage text not null,
    fields text not null
);
create index likenesses_by_digest on likenesses (workspace, digest, job_seq desc);
create index likenesses_by_lineage on likenesses (workspace, lineage, job_seq desc);
