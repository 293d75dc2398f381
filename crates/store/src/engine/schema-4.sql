-- What a job's body says that lists and searches look for: its display name (`name`), its tags (`tag`) and its literal
-- inputs (`param`). Written with the body.
create table job_labels (
    job_seq integer not null,
    kind text not null,
    key text not null,
    value text not null,
    primary key (job_seq, kind, key)
) without rowid;

insert into job_labels (job_seq, kind, key, value)
    select seq, 'name', '', json_extract(body, '$.displayName') from jobs where json_type(body, '$.displayName') = 'text';
insert into job_labels (job_seq, kind, key, value)
    select j.seq, 'tag', t.key, case t.type when 'true' then 'True' when 'false' then 'False' else cast(t.atom as text) end
    from jobs j, json_each(j.body, '$.tags') t where t.atom is not null on conflict do nothing;
insert into job_labels (job_seq, kind, key, value)
    select j.seq, 'param', t.key,
        case json_type(t.value, '$.value') when 'true' then 'True' when 'false' then 'False' else cast(json_extract(t.value, '$.value') as text) end
    from jobs j, json_each(j.body, '$.inputs') t
    where t.type = 'object' and json_type(t.value, '$.value') in ('text', 'integer', 'real', 'true', 'false') on conflict do nothing;

-- Names of workspaces are compared without regard to case.
drop index audit_by_workspace;
create index audit_by_workspace on audit (lower(workspace), id);
