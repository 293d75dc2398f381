-- Nodes of managed clusters, from before they are ordered until their provider says that they are gone.
create table machines (
    cluster text not null,
    name text not null,
    standing text not null,
    -- Why it is not at work, in words.
    reason text not null default '',
    -- What its provider was asked for, and what it says of itself.
    ordered text not null,
    facts text not null default '{}',
    -- A digest of the key that the machine made when it joined.
    joined text not null default '',
    created_at integer not null,
    -- When its standing, or whether it has work, last changed.
    since integer not null,
    seen_at integer not null default 0,
    primary key (cluster, name)
);

-- Which part of an attempt belongs to which of them, and what became of it there.
create table machine_parts (
    cluster text not null,
    machine text not null,
    attempt text not null,
    part integer not null,
    fate text,
    primary key (attempt, part)
);
create index machine_parts_by_machine on machine_parts (cluster, machine);
