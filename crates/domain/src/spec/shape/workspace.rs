//! The keys of workspaces and registries.

use super::{
    Kind, Object, PLAIN, key,
    parts::{CONTEXT, DESCRIPTION, ID, SCHEMA, STATE, TAGS},
    targets::TARGET_IDENTITY,
};

pub(super) static WORKSPACE: Object = Object {
    name: "workspace",
    doc: "The unit of sharing, permission and quota. Keys about Azure's own resources are kept and not used.",
    keys: &[
        SCHEMA,
        key("name", Kind::Text, "The workspace's name; may be given on the command line instead."),
        key("display_name", Kind::Label, "Shown in lists."),
        DESCRIPTION,
        TAGS,
        key("location", Kind::Text, "A region."),
        key("resource_group", Kind::Text, "Part of resource ids."),
        key("hbi_workspace", Kind::Bool, "Marks data of high business impact.").or("false"),
        key("storage_account", Kind::Text, "An existing storage account's id."),
        key("container_registry", Kind::Text, "An existing registry's id."),
        key("key_vault", Kind::Text, "An existing key vault's id."),
        key("application_insights", Kind::Text, "An existing Application Insights id."),
        key("image_build_compute", Kind::Text, "The target that builds images."),
        key(
            "public_network_access",
            Kind::Words(&["Enabled", "Disabled"]),
            "Whether the workspace is reachable from outside.",
        ),
        key("customer_managed_key", Kind::Object(&CUSTOMER_KEY), "The key that encrypts the workspace."),
        key("network_acls", Kind::Map, "From where the workspace may be reached."),
        key("serverless_compute", Kind::Map, "The network of serverless nodes."),
        key("provision_network_now", Kind::Bool, "Whether the managed network is made at once."),
        key("allow_roleassignment_on_rg", Kind::Bool, "Whether roles may be given on the resource group."),
        key("workspace_hub", Kind::Text, "The hub's id, for a project."),
        key("discovery_url", Kind::Shown, "Filled in by the server."),
        key("mlflow_tracking_uri", Kind::Shown, "Filled in by the server."),
        ID,
        CONTEXT,
        STATE,
        key("managed_network", Kind::Map, "The network of managed nodes."),
        key("primary_user_assigned_identity", Kind::Text, "The identity used first."),
        key("system_datastores_auth_mode", Kind::Text, "How built-in datastores are entered."),
        key("enable_data_isolation", Kind::Bool, "Whether data of different projects is kept apart."),
        key("identity", Kind::Object(&TARGET_IDENTITY), "The identity of the workspace."),
    ],
    ..PLAIN
};

static CUSTOMER_KEY: Object = Object {
    name: "customer_managed_key",
    doc: "The key that encrypts the workspace.",
    keys: &[
        key("key_vault", Kind::Text, "The vault's id."),
        key("key_uri", Kind::Text, "The key's address."),
        key("cosmosdb_id", Kind::Text, "A database of your own."),
        key("storage_id", Kind::Text, "A storage account of your own."),
        key("search_id", Kind::Text, "A search service of your own."),
    ],
    ..PLAIN
};

pub(super) static REGISTRY: Object = Object {
    name: "registry",
    doc: "A place from which several workspaces take models, environments, components and data.",
    keys: &[
        SCHEMA,
        key("name", Kind::Text, "The registry's name; may be given on the command line instead."),
        DESCRIPTION,
        TAGS,
        key("location", Kind::Text, "A region.").required(),
        key(
            "public_network_access",
            Kind::Words(&["Enabled", "Disabled"]),
            "Whether the registry is reachable from outside.",
        ),
        key("replication_locations", Kind::List(&REGION_VALUE), "The regions it is kept in."),
        key("container_registry", Kind::Either(&[Kind::Text, Kind::Object(&ACCOUNT)]), "Where its images are kept."),
        key("intellectual_property", Kind::Object(&PUBLISHER), "Whose assets these are."),
        key("identity", Kind::Shown, "Filled in by the server."),
        key("kind", Kind::Shown, "Filled in by the server."),
        key("sku", Kind::Shown, "Filled in by the server."),
        key("managed_resource_group", Kind::Shown, "Filled in by the server."),
        key("mlflow_registry_uri", Kind::Shown, "Filled in by the server."),
        key("discovery_url", Kind::Shown, "Filled in by the server."),
        ID,
        CONTEXT,
        STATE,
    ],
    ..PLAIN
};

static REGION_VALUE: Kind = Kind::Object(&REGION);

static REGION: Object = Object {
    name: "region",
    doc: "A region the registry is kept in.",
    keys: &[
        key("location", Kind::Text, "The region's name."),
        key(
            "storage_config",
            Kind::Either(&[Kind::List(&Kind::Text), Kind::Object(&STORAGE)]),
            "Ids of storage accounts, or how one is made.",
        ),
    ],
    ..PLAIN
};

static STORAGE: Object = Object {
    name: "storage_config",
    doc: "How a storage account is made.",
    keys: &[
        key("storage_account_hns", Kind::Bool, "Whether it has folders."),
        key("storage_account_type", Kind::Words(STORAGES), "The kind of account."),
        key("replication_count", Kind::POSITIVE, "How many accounts."),
        key("arm_resource_id", Kind::Shown, "Filled in by the server."),
        key("replicated_ids", Kind::Shown, "Filled in by the server."),
    ],
    ..PLAIN
};

const STORAGES: &[&str] = &[
    "standard_lrs",
    "standard_grs",
    "standard_ragrs",
    "standard_zrs",
    "standard_gzrs",
    "standard_ragzrs",
    "premium_lrs",
    "premium_zrs",
];

static ACCOUNT: Object = Object {
    name: "container_registry",
    doc: "How a container registry is made.",
    keys: &[
        key("acr_account_sku", Kind::Words(&["premium"]), "The kind of account."),
        key("arm_resource_id", Kind::Shown, "Filled in by the server."),
    ],
    ..PLAIN
};

static PUBLISHER: Object = Object {
    name: "intellectual_property",
    doc: "Whose assets these are.",
    keys: &[key("publisher", Kind::Text, "The publisher's name.")],
    ..PLAIN
};
