//! The keys of datastores and compute targets.

use super::{
    Key, Kind, Object, PLAIN, Variant, key,
    parts::{CONTEXT, DESCRIPTION, ID, SCHEMA, STATE, TAGS},
    schedule,
};
use crate::cluster::LOWER_PRIORITY;

const ACCOUNT: Key = key("account_name", Kind::Text, "The storage account.").required();
const ENDPOINT: Key = key(
    "endpoint",
    Kind::Text,
    "The storage service's domain, or the address of another server that speaks its protocol.",
);
const PROTOCOL: Key = key("protocol", Kind::Text, "`https`, `wasbs`, `abfss` and the like.").or("https");
const PREFIX: Key = key("prefix", Kind::Text, "A folder in it that counts as the top.");
const BUCKET: Key = key("bucket", Kind::Text, "The bucket.").required();

pub(super) static DATASTORE: Object = Object {
    name: "datastore",
    doc: "Where data lies, and the credentials for it.",
    keys: &[
        SCHEMA,
        key("name", Kind::Text, "The datastore's name; may be given on the command line instead."),
        key("type", Kind::Words(DATASTORES), "The kind of storage.").required(),
        DESCRIPTION,
        TAGS,
        key(
            "credentials",
            Kind::Object(&CREDENTIALS),
            "Kept encrypted and never shown again; none means the identity of the machine.",
        ),
    ],
    variants: &[
        Variant {
            word: "azure_blob",
            doc: "A container of Azure Blob storage.",
            keys: &[ACCOUNT, key("container_name", Kind::Text, "The container.").required(), ENDPOINT, PROTOCOL],
        },
        Variant {
            word: "azure_file",
            doc: "An Azure file share.",
            keys: &[ACCOUNT, key("file_share_name", Kind::Text, "The share.").required(), ENDPOINT, PROTOCOL],
        },
        Variant {
            word: "azure_data_lake_gen2",
            doc: "A file system of Azure Data Lake, second generation.",
            keys: &[ACCOUNT, key("filesystem", Kind::Text, "The file system.").required(), ENDPOINT, PROTOCOL],
        },
        Variant {
            word: "azure_data_lake_gen1",
            doc: "Azure Data Lake, first generation.",
            keys: &[key("store_name", Kind::Text, "The store.").required()],
        },
        Variant {
            word: "one_lake",
            doc: "A lakehouse of Microsoft Fabric.",
            keys: &[
                key("one_lake_workspace_name", Kind::Text, "The workspace there.").required(),
                key("artifact", Kind::Object(&LAKE_ARTIFACT), "The lakehouse.").required(),
                ENDPOINT,
            ],
        },
        Variant {
            word: "hdfs",
            doc: "A Hadoop file system.",
            keys: &[key("name_node_address", Kind::Text, "The name node.").required(), PROTOCOL],
        },
        Variant {
            word: "s3",
            doc: "A bucket of Amazon S3, or of a server that speaks its protocol.",
            keys: &[
                BUCKET,
                PREFIX,
                ENDPOINT,
                key("region", Kind::Text, "The bucket's region.").or("us-east-1"),
                key("allow_http", Kind::Bool, "Whether the endpoint may be plain `http`.").or("false"),
            ],
        },
        Variant { word: "gcs", doc: "A bucket of Google Cloud Storage.", keys: &[BUCKET, PREFIX, ENDPOINT] },
        Variant {
            word: "local",
            doc: "A folder that every node of the target sees under the same path.",
            keys: &[key("path", Kind::Text, "The folder, as an absolute path.").required()],
        },
        Variant {
            word: "nfs",
            doc: "A network share that is mounted on the nodes.",
            keys: &[
                key("path", Kind::Text, "Where it is mounted, as an absolute path.").required(),
                key("server", Kind::Text, "The server that exports it; for people."),
                key("export", Kind::Text, "The exported path; for people."),
            ],
        },
    ],
    ..PLAIN
};

const DATASTORES: &[&str] = &[
    "azure_blob",
    "azure_file",
    "azure_data_lake_gen2",
    "azure_data_lake_gen1",
    "one_lake",
    "hdfs",
    "s3",
    "gcs",
    "local",
    "nfs",
];

static LAKE_ARTIFACT: Object = Object {
    name: "artifact",
    doc: "A lakehouse.",
    keys: &[
        key("name", Kind::Text, "Its name.").required(),
        key("type", Kind::Words(&["lake_house"]), "The kind of artifact.").or("lake_house"),
    ],
    ..PLAIN
};

static CREDENTIALS: Object = Object {
    name: "credentials",
    doc: "One way in; give the keys of one.",
    keys: &[
        key("account_key", Kind::Text, "Of a storage account."),
        key("sas_token", Kind::Text, "A shared access signature."),
        key("tenant_id", Kind::Text, "Of a service principal."),
        key("client_id", Kind::Text, "Of a service principal."),
        key("client_secret", Kind::Text, "Of a service principal."),
        key("certificate", Kind::Text, "Of a service principal, instead of a secret."),
        key("thumbprint", Kind::Text, "Of that certificate."),
        key("authority_url", Kind::Text, "Where a service principal signs in."),
        key("resource_url", Kind::Text, "For what it asks access."),
        key("access_key_id", Kind::Text, "Of S3."),
        key("secret_access_key", Kind::Text, "Of S3."),
        key("session_token", Kind::Text, "Of S3, where access is temporary."),
        key("service_account_key", Kind::Text, "Of Google Cloud: the key file's JSON text."),
        key("kerberos_principal", Kind::Text, "Of HDFS."),
        key("kerberos_realm", Kind::Text, "Of HDFS."),
        key("kerberos_kdc_address", Kind::Text, "Of HDFS."),
        key("kerberos_keytab", Kind::Text, "Of HDFS."),
        key("kerberos_password", Kind::Text, "Of HDFS, instead of a keytab."),
    ],
    ..PLAIN
};

const SIZE: Key = key("size", Kind::Text, "The machine size.").or("Standard_DS3_v2");
const HOST_KEY: &str =
    "Fingerprint of the key it must show, such as `SHA256:…`; those of the hosts on the way as well, between commas.";
const SSH_KEPT: &str =
    "Who enters the machine, and how; with nodes that a cluster makes it is kept and shown, and nothing is set up.";
const SSH: Key = key("ssh_settings", Kind::Object(&SSH_SETTINGS), SSH_KEPT);
const SSH_PUBLIC: Key = key(
    "ssh_public_access_enabled",
    Kind::Bool,
    "Whether SSH is reachable from outside; kept and shown, and nothing is set up.",
);
const NETWORK: Key = key("network_settings", Kind::Map, "The network the nodes join.");
const PUBLIC_IP: Key = key("enable_node_public_ip", Kind::Bool, "Whether nodes get public addresses.").or("true");
const RESOURCE_ID: Key =
    key("resource_id", Kind::Text, "The machine or cluster to attach, by its Azure id.").required();
const IDENTITY: Key = key("identity", Kind::Object(&TARGET_IDENTITY), "The identity of the nodes.");

const PREEMPTION: Key = key(
    "preemption",
    Kind::Words(&["off", LOWER_PRIORITY]),
    "Whether a job of higher priority may stop those of lower that are in its way; they begin again later.",
)
.or("off");

pub(super) static COMPUTE: Object = Object {
    name: "compute",
    doc: "A compute target. `local`, `amlcompute`, `kubernetes`, `virtualmachine` and `slurm` run work; the others are kept as given.",
    keys: &[
        SCHEMA,
        key("name", Kind::Text, "The target's name; may be given on the command line instead."),
        key("type", Kind::Words(COMPUTES), "The kind of target.").required(),
        DESCRIPTION,
        TAGS,
        key("location", Kind::Text, "A region; the workspace's when absent."),
        ID,
        CONTEXT,
        STATE,
    ],
    variants: &[
        Variant {
            word: "local",
            doc: "The machine the server runs on.",
            keys: &[
                key(
                    "isolation",
                    Kind::Words(&["optional", "required"]),
                    "Whether a job whose image cannot be used runs on the host or fails.",
                )
                .or("optional"),
                key(
                    "instance_types",
                    Kind::MapOf(&INSTANCE_TYPE_VALUE),
                    "Named shapes of resources that jobs can ask for.",
                ),
            ],
        },
        Variant {
            word: "amlcompute",
            doc: "A managed cluster that grows and shrinks.",
            keys: &[
                SIZE,
                key("tier", Kind::Words(&["dedicated", "low_priority"]), "Whether nodes can be taken away.")
                    .or("dedicated"),
                key("min_instances", Kind::COUNT, "Nodes that stay.").or("0"),
                key("max_instances", Kind::COUNT, "The most nodes.").or("4"),
                key("idle_time_before_scale_down", Kind::COUNT, "Seconds after which an idle node goes.").or("120"),
                PREEMPTION,
                key("provider", Kind::Object(&NODE_PROVIDER), "Who brings the nodes; this machine when absent."),
                SSH,
                SSH_PUBLIC,
                NETWORK,
                PUBLIC_IP,
                IDENTITY,
            ],
        },
        Variant {
            word: "computeinstance",
            doc: "One machine for one person.",
            keys: &[
                SIZE,
                key("create_on_behalf_of", Kind::Map, "For whom it is made."),
                key("schedules", Kind::Object(&schedule::START_STOP), "When it starts and stops."),
                key("idle_time_before_shutdown_minutes", Kind::COUNT, "Minutes after which it stops when idle."),
                key("idle_time_before_shutdown", Kind::Text, "The same as a duration."),
                key("setup_scripts", Kind::Map, "What to run when it is made and started."),
                key("custom_applications", Kind::List(&Kind::Map), "Programs that run on it, each from an image."),
                key("enable_sso", Kind::Bool, "Whether its owner is signed in by itself."),
                key("enable_root_access", Kind::Bool, "Whether its owner may become root."),
                key("enable_os_patching", Kind::Bool, "Whether the operating system is kept up to date."),
                key("release_quota_on_stop", Kind::Bool, "Whether its share of the quota is free while it is stopped."),
                SSH,
                SSH_PUBLIC,
                NETWORK,
                PUBLIC_IP,
                IDENTITY,
            ],
        },
        Variant {
            word: "kubernetes",
            doc: "A namespace of a Kubernetes cluster.",
            keys: &[
                key(
                    "resource_id",
                    Kind::Text,
                    "The cluster by its Azure id, whose last part is the name that the extension was installed with. Not needed where there is one cluster.",
                ),
                key("namespace", Kind::Text, "An existing namespace.").or("default"),
                key(
                    "properties",
                    Kind::Map,
                    "More settings of the target: `default_instance_type`, `default_image` (of work whose environment names none), `image_pull_secrets`, `service_account`, `pod_security`, `run_as_user`, `queue`, `priority_class` and `priority_class_low`, `_medium` and `_high`.",
                ),
                key(
                    "preemption",
                    Kind::Words(&["off"]),
                    "Kubernetes itself says who makes way, by priority classes: `priority_class_high` and the like in `properties`.",
                ),
                IDENTITY,
            ],
        },
        Variant {
            word: "virtualmachine",
            doc: "A machine reached by SSH.",
            keys: &[
                key("resource_id", Kind::Text, "The machine by its Azure id, whose last part is its name or address."),
                key("address", Kind::Text, "The machine's name or address, where `resource_id` does not end with it."),
                SSH,
                key("ssh_port", Kind::COUNT, "The port of SSH.").or("22"),
                key("host_key", Kind::Text, HOST_KEY),
                key("jump_host", Kind::Text, "Hosts on the way, as `user@host:port`, several between commas."),
                key("slots", Kind::COUNT, "How many jobs it takes at a time.").or("1"),
                PREEMPTION,
            ],
        },
        Variant {
            word: "synapsespark",
            doc: "A Spark pool.",
            keys: &[
                RESOURCE_ID,
                key("node_count", Kind::COUNT, "Nodes."),
                key("scale_settings", Kind::Map, "How it grows and shrinks."),
                key("auto_pause_settings", Kind::Map, "When it rests."),
                IDENTITY,
            ],
        },
        Variant {
            word: "slurm",
            doc: "A Slurm cluster.",
            keys: &[
                key("host", Kind::Text, "A login node; this machine when absent."),
                SSH,
                key("host_key", Kind::Text, HOST_KEY),
                key("jump_host", Kind::Text, "Hosts on the way, as `user@host:port`, several between commas."),
                key("server_url", Kind::Text, "Where compute nodes reach this server."),
                key("partition", Kind::Text, "The partition."),
                key("account", Kind::Text, "The account that is charged."),
                key("qos", Kind::Text, "The quality of service."),
                key(
                    "preemption",
                    Kind::Words(&["off"]),
                    "Slurm itself says who makes way, by `qos` and `partition` (`PreemptType` in its configuration).",
                ),
                key("cpus", Kind::COUNT, "CPUs of each node that a job gets.").or("1"),
                key("memory", Kind::Text, "Memory of each node that a job gets, such as `16Gi`."),
                key("gpus", Kind::COUNT, "GPUs of each node that a job gets."),
                key("gres", Kind::Text, "Generic resources in Slurm's words, in place of `gpus`."),
                key("arguments", Kind::List(&Kind::Text), "More words for `sbatch`."),
                key(
                    "instance_types",
                    Kind::Map,
                    "Named shapes, each with keys as above that differ from the target's.",
                ),
            ],
        },
        Variant {
            word: "pool",
            doc: "Other targets: a job goes to the first that is well and has room.",
            keys: &[
                key("targets", Kind::List(&Kind::Text), "Their names, in the order in which they are tried.")
                    .required(),
                key("max_data", Kind::Text, "A job with more input data than this, such as `10GiB`, does not travel."),
            ],
        },
    ],
    ..PLAIN
};

const COMPUTES: &[&str] =
    &["local", "amlcompute", "computeinstance", "kubernetes", "virtualmachine", "synapsespark", "slurm", "pool"];

static INSTANCE_TYPE_VALUE: Kind = Kind::Object(&INSTANCE_TYPE);

static INSTANCE_TYPE: Object = Object {
    name: "instance type",
    doc: "A named shape of resources, as in the `spec` of an `InstanceType`.",
    keys: &[
        key("resources", Kind::Object(&INSTANCE_RESOURCES), "What work of this shape is given.").required(),
        key("nodeSelector", Kind::Labels, "Labels of the nodes that offer it."),
    ],
    ..PLAIN
};

static INSTANCE_RESOURCES: Object = Object {
    name: "resources of an instance type",
    doc: "Amounts as Kubernetes writes them.",
    keys: &[
        key("requests", Kind::Object(&AMOUNTS), "Set aside for the work.").required(),
        key("limits", Kind::Object(&AMOUNTS), "The most it may use."),
    ],
    ..PLAIN
};

static AMOUNTS: Object = Object {
    name: "amounts",
    doc: "Amounts as Kubernetes writes them.",
    keys: &[
        key("cpu", Kind::Label, "Cores: `2` or `500m`.").required(),
        key("memory", Kind::Label, "Memory: `4Gi`, `512Mi`.").required(),
        key("nvidia.com/gpu", Kind::Label, "Whole GPUs; under `limits` only.").or("0"),
    ],
    ..PLAIN
};

static NODE_PROVIDER: Object = Object {
    name: "provider",
    doc: "Who brings the nodes of a managed cluster, and takes them away.",
    keys: &[
        key(
            "type",
            Kind::Words(&["process", "ssh", "command", "kubernetes"]),
            "`process`: parts of the server's machine; `ssh`: machines that are there; `command`: a program of yours makes them; `kubernetes`: a pod each.",
        )
        .required(),
        key("hosts", Kind::List(&Kind::Either(&[Kind::Text, Kind::Map])), "`ssh`: the machines, each by its address or with keys `address`, `port`, `host_key`."),
        key("user", Kind::Text, "`ssh`: the user."),
        key("port", Kind::COUNT, "`ssh`: the port.").or("22"),
        key("private_key_file", Kind::Text, "`ssh`: the file of the private key, on the machine of whoever creates the target."),
        key("password", Kind::Text, "`ssh`: the password, where there is no key."),
        key("jump_host", Kind::Text, "`ssh`: hosts on the way, as `user@host:port`, several between commas."),
        key("program", Kind::Text, "`command`: the name of a file in the folder `providers` of the server's home."),
        key("timeout_seconds", Kind::COUNT, "`command`: how long one call of it may take.").or("600"),
        key("image", Kind::Text, "`kubernetes`: the image that nodes are made of, with a shell and what jobs need."),
        key("namespace", Kind::Text, "`kubernetes`: an existing namespace.").or("default"),
        key("kubeconfig_file", Kind::Text, "`kubernetes`: how the server reaches the cluster, on the machine of whoever creates the target; where absent, the cluster that the server runs in."),
        key("context", Kind::Text, "`kubernetes`: the context of the kubeconfig, in place of its current one."),
        key("agent_image", Kind::Text, "`kubernetes`: the image of Peregrine, which brings the agent; `peregrine:<version>` where absent."),
        key("node_selector", Kind::Labels, "`kubernetes`: labels of the machines that take nodes."),
        key("tolerations", Kind::List(&Kind::Object(&TOLERATION)), "`kubernetes`: taints that nodes are made in spite of."),
        key("priority_class", Kind::Text, "`kubernetes`: the priority class of nodes."),
        key("service_account", Kind::Text, "`kubernetes`: the service account of nodes, whose token jobs then find."),
        key("image_pull_secrets", Kind::List(&Kind::Text), "`kubernetes`: Secrets with which images are pulled."),
        key("server_url", Kind::Text, "`command`, `kubernetes`: where nodes reach this server."),
        key("peers", Kind::Bool, "Whether nodes fetch data from each other before they ask the store; where absent, unless the type is `command`."),
        key(
            "lease_seconds",
            Kind::COUNT,
            "How long a node may be out of reach, at least 30: then it is taken away, and one without work leaves by itself.",
        )
        .or("600"),
    ],
    ..PLAIN
};

static TOLERATION: Object = Object {
    name: "toleration",
    doc: "A taint that pods are placed in spite of, as Kubernetes writes it.",
    keys: &[
        key("key", Kind::Text, "The taint; any where absent."),
        key("operator", Kind::Words(&["Equal", "Exists"]), "How it is compared.").or("Equal"),
        key("value", Kind::Label, "Its value."),
        key("effect", Kind::Words(&["NoSchedule", "PreferNoSchedule", "NoExecute"]), "Its effect; any where absent."),
        key("toleration_seconds", Kind::COUNT, "How long a taint `NoExecute` is borne."),
    ],
    ..PLAIN
};

static SSH_SETTINGS: Object = Object {
    name: "ssh_settings",
    doc: "Who enters a machine, and how.",
    keys: &[
        key("admin_username", Kind::Text, "The user."),
        key("admin_password", Kind::Text, "The password."),
        key("ssh_key_value", Kind::Text, "The public key."),
        key("ssh_private_key_file", Kind::Text, "The file of the private key, for an attached machine."),
        key("ssh_port", Kind::COUNT, "The port of SSH."),
    ],
    ..PLAIN
};

pub(super) static TARGET_IDENTITY: Object = Object {
    name: "identity",
    doc: "The identity of a resource.",
    keys: &[
        key("type", Kind::Words(IDENTITIES), "The kind of identity."),
        key("user_assigned_identities", Kind::Either(&[Kind::List(&Kind::Map), Kind::Map]), "Identities by their ids."),
        key("principal_id", Kind::Text, "Filled in by Azure."),
        key("tenant_id", Kind::Text, "Filled in by Azure."),
    ],
    ..PLAIN
};

const IDENTITIES: &[&str] = &["none", "system_assigned", "user_assigned", "system_assigned,user_assigned"];
