-- Resources that are kept as their clients sent them, under a workspace or (with an empty workspace) under the server:
-- schedules, endpoints, their deployments, registries.
create table records (
    seq integer primary key autoincrement,
    workspace text not null,
    kind text not null,
    -- The endpoint of a deployment; empty for everything else.
    parent text not null default '',
    name text not null,
    body text not null,
    secret blob,
    archived integer not null default 0,
    created_by text not null,
    created_at integer not null,
    changed_at integer not null,
    version integer not null default 1
);
create unique index records_by_name on records (workspace, kind, parent, name);
-- An endpoint's address names it without its workspace.
create index records_anywhere on records (kind, name);

-- Passwords and private keys of attached machines, sealed.
alter table computes add column secret blob;

-- Long-running operations, for clients that poll them.
create table operations (
    id text primary key,
    workspace text not null,
    resource text not null,
    status text not null,
    error text,
    started_at integer not null,
    ended_at integer
);
create index operations_by_age on operations (started_at);

-- When a workspace was last changed; as old as itself where that was never written down.
alter table workspaces add column changed_at integer not null default 0;
update workspaces set changed_at = created_at;

-- Users and programs that may call the server. Secrets are kept as digests.
create table principals (
    id text primary key,
    name text not null,
    secret text not null,
    created_by text not null,
    created_at integer not null,
    expires_at integer,
    revoked_at integer
);

-- What a principal may do in a workspace; `*` stands for all of them and for the server itself.
create table roles (
    principal text not null,
    workspace text not null,
    role text not null,
    primary key (principal, workspace)
);

-- Every change anyone made or was refused, never changed afterwards.
create table audit (
    id integer primary key autoincrement,
    at integer not null,
    caller text not null,
    workspace text not null,
    route text not null,
    method text not null,
    path text not null,
    status integer not null
);
create index audit_by_workspace on audit (workspace collate nocase, id);

-- Lists show jobs that are put away or those that are not.
create index jobs_by_archive on jobs (workspace, archived, seq desc);
