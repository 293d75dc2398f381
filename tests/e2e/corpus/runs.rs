//! Every command job of the corpus that needs neither the internet nor a GPU, what it is given and what it must leave.
//!
//! The corpus holds the files but not the scripts and data they name, so each run brings small ones of ours. What a
//! file names and this machine cannot have (a cluster, a cloud address, four nodes) is replaced by `--set`, as a user
//! would do it; the rest of the file runs as it stands.

/// Files of ours: path and text of each.
pub(super) type Beside = &'static [(&'static str, &'static str)];

/// One file of the corpus and its run.
pub(super) struct Run {
    pub(super) file: &'static str,
    /// The software it runs with, for the report: the file's own, or what stands in for it and why.
    pub(super) software: &'static str,
    pub(super) sets: &'static [&'static str],
    /// Files of ours, by path beside the job file.
    pub(super) beside: Beside,
    /// Pieces that its log must hold.
    pub(super) log: &'static [&'static str],
    /// Files it must leave, as `job download --all` lays them out, and a piece of each.
    pub(super) leaves: &'static [(&'static str, &'static str)],
}

pub(super) const SKLEARN: &str = "its own, curated sklearn-1.5";
pub(super) const LIGHTGBM: &str = "its own, curated lightgbm-3.3";
const TORCH: &str = "its own, curated acpt-pytorch-2.8-cuda12.6";
const TENSORFLOW: &str = "its own, curated tensorflow-2.16-cuda12";
const IMAGE: &str = "its image, or the host where no engine runs";
const BUILD: &str = "its build context, or the host where no engine runs";

pub(super) const SAID: &str = include_str!("scripts/said.py");
const HELLO_IRIS: (&str, &str) = ("src/hello-iris.py", include_str!("scripts/hello_iris.py"));
const NOTEBOOK: &str = include_str!("scripts/notebook.ipynb");
pub(super) const IRIS: &str = "sepal_length,sepal_width,petal_length,petal_width,species\n\
    5.1,3.5,1.4,0.2,setosa\n4.9,3.0,1.4,0.2,setosa\n4.7,3.2,1.3,0.2,setosa\n\
    7.0,3.2,4.7,1.4,versicolor\n6.4,3.2,4.5,1.5,versicolor\n6.9,3.1,4.9,1.5,versicolor\n\
    6.3,3.3,6.0,2.5,virginica\n5.8,2.7,5.1,1.9,virginica\n7.1,3.0,5.9,2.1,virginica\n";
const DIABETES: &str = "age,bmi,target\n30,20,100\n40,22,121\n50,27,149\n60,30,170\n";
/// What stands in for conda files of which nothing is needed.
pub(super) const SMALL: &str = "dependencies:\n- python=3.10\n- pip:\n  - six==1.16.0\n";
const DOCKERFILE: (&str, &str) = ("docker-context/Dockerfile", "FROM python:3.12-slim\n");
const FLOWERS: &[&str] = &["9 flowers of 3 species"];
const ONE_NODE: &str = "resources.instance_count=1";
const TWO_RANKS: &str = "distribution.process_count_per_instance=2";

/// A job that needs nothing but its file.
pub(super) const fn plain(file: &'static str, log: &'static [&'static str]) -> Run {
    Run { file, software: IMAGE, sets: &[], beside: &[], log, leaves: &[] }
}

pub(super) const RUNS: &[Run] = &[
    plain("cli/jobs/basics/hello-world.yml", &["hello world"]),
    plain("cli/jobs/basics/hello-world-env-var.yml", &["hello world"]),
    plain("cli/jobs/basics/hello-world-input.yml", &["hello world\n42"]),
    plain("cli/jobs/basics/hello-world-org.yml", &["hello world"]),
    Run {
        leaves: &[("artifacts/outputs/helloworld.txt", "hello world")],
        ..plain("cli/jobs/basics/hello-world-output.yml", &[])
    },
    Run {
        leaves: &[("named-outputs/hello_output/helloworld.txt", "hello world")],
        ..plain("cli/jobs/basics/hello-world-output-data.yml", &[])
    },
    Run {
        beside: &[("src/one.py", SAID), ("src/two.txt", "2\n")],
        ..plain("cli/jobs/basics/hello-code.yml", &["one.py", "two.txt"])
    },
    Run {
        software: "a registered environment with pygit2, so that the file's `pip install` changes nothing here",
        sets: &["environment=azureml:notebooks@latest"],
        beside: &[("src/hello-git.py", include_str!("scripts/git_version.py"))],
        ..plain("cli/jobs/basics/hello-git.yml", &["already satisfied", "empty is True"])
    },
    Run {
        software: "a registered environment with papermill, so that the file's `pip install` changes nothing here",
        sets: &["environment=azureml:notebooks@latest"],
        beside: &[("src/hello-notebook.ipynb", NOTEBOOK)],
        leaves: &[("artifacts/outputs/out.ipynb", "notebook says 45")],
        ..plain("cli/jobs/basics/hello-notebook.yml", &[])
    },
    Run {
        file: "cli/jobs/basics/hello-interactive.yml",
        software: TENSORFLOW,
        // Without the ten minutes in which people would look around.
        sets: &["command=python hello-interactive.py"],
        beside: &[("src/hello-interactive.py", include_str!("scripts/digits_keras.py"))],
        log: &["tensorflow 2.16", "2 epochs"],
        leaves: &[],
    },
    Run {
        file: "cli/jobs/basics/hello-data-uri-folder.yml",
        software: SKLEARN,
        sets: &[],
        beside: &[("src/unused.py", SAID)],
        log: &["sample.csv"],
        leaves: &[],
    },
    Run {
        file: "cli/jobs/basics/hello-dataset.yml",
        software: SKLEARN,
        sets: &[],
        beside: &[("src/unused.py", SAID)],
        log: &["iris.csv"],
        leaves: &[],
    },
    Run {
        file: "cli/jobs/basics/hello-iris-datastore-file.yml",
        software: SKLEARN,
        sets: &[],
        beside: &[HELLO_IRIS],
        log: FLOWERS,
        leaves: &[],
    },
    Run {
        file: "cli/jobs/basics/hello-iris-datastore-folder.yml",
        software: SKLEARN,
        sets: &[],
        beside: &[HELLO_IRIS],
        log: FLOWERS,
        leaves: &[],
    },
    Run {
        file: "cli/jobs/basics/hello-iris-file.yml",
        software: SKLEARN,
        sets: &["inputs.iris_csv.path=iris/iris.csv"],
        beside: &[HELLO_IRIS, ("iris/iris.csv", IRIS)],
        log: FLOWERS,
        leaves: &[],
    },
    Run {
        file: "cli/jobs/basics/hello-iris-folder.yml",
        software: SKLEARN,
        sets: &["inputs.data_dir.path=iris"],
        beside: &[HELLO_IRIS, ("iris/iris.csv", IRIS)],
        log: FLOWERS,
        leaves: &[],
    },
    Run {
        file: "cli/jobs/basics/hello-iris-literal.yml",
        software: SKLEARN,
        // The input is plain text in this file, so the script is what opens it.
        sets: &["inputs.iris_csv=iris.csv"],
        beside: &[HELLO_IRIS, ("src/iris.csv", IRIS)],
        log: FLOWERS,
        leaves: &[],
    },
    Run {
        file: "cli/jobs/basics/hello-mlflow.yml",
        software: SKLEARN,
        sets: &[],
        beside: &[("src/hello-mlflow.py", include_str!("scripts/mlflow_metric.py"))],
        log: &["hello = 42"],
        leaves: &[],
    },
    Run {
        file: "cli/jobs/basics/hello-model-as-input.yml",
        software: SKLEARN,
        sets: &[],
        beside: &[("../../assets/model/mlflow-model/MLmodel", "flavors: {}\n")],
        log: &["MLmodel"],
        leaves: &[],
    },
    Run {
        file: "cli/jobs/basics/hello-model-as-output.yml",
        software: SKLEARN,
        sets: &[],
        beside: &[
            ("../../assets/model/mlflow-model/MLmodel", "flavors: {}\n"),
            ("src/hello-model-as-output.py", include_str!("scripts/copy_model.py")),
        ],
        log: &["copied MLmodel"],
        leaves: &[("named-outputs/output_folder/MLmodel", "flavors")],
    },
    Run {
        file: "cli/jobs/single-step/scikit-learn/iris/job.yml",
        software: SKLEARN,
        sets: &["inputs.iris_csv.path=iris.csv"],
        beside: &[("src/main.py", include_str!("scripts/iris_svm.py")), ("iris.csv", IRIS)],
        log: &["svm rbf C=0.8: accuracy"],
        leaves: &[],
    },
    Run {
        file: "cli/jobs/single-step/scikit-learn/iris/job-docker-context.yml",
        software: BUILD,
        sets: &["inputs.iris_csv.path=iris.csv"],
        beside: &[("src/main.py", SAID), ("iris.csv", IRIS), DOCKERFILE],
        log: &["--C 0.8 --kernel rbf --coef0 0.1", "file: sepal_length"],
        leaves: &[],
    },
    Run {
        file: "cli/jobs/single-step/scikit-learn/diabetes/job.yml",
        software: SKLEARN,
        sets: &["inputs.diabetes_csv.path=diabetes.csv"],
        beside: &[("src/main.py", include_str!("scripts/diabetes.py")), ("diabetes.csv", DIABETES)],
        log: &["linear regression: r2 1.00"],
        leaves: &[],
    },
    Run {
        file: "cli/jobs/single-step/scikit-learn/iris-notebook/job.yml",
        software: "a registered environment with papermill, which its build context would bring",
        sets: &["environment=azureml:notebooks@latest"],
        beside: &[("src/main.ipynb", NOTEBOOK), DOCKERFILE],
        log: &[],
        leaves: &[("artifacts/outputs/out.ipynb", "notebook says 45")],
    },
    Run {
        file: "cli/jobs/single-step/lightgbm/iris/job.yml",
        software: LIGHTGBM,
        sets: &["inputs.iris_csv.path=iris.csv"],
        beside: &[("src/main.py", include_str!("scripts/iris_lightgbm.py")), ("iris.csv", IRIS)],
        log: &["lightgbm 3.3.5: accuracy"],
        leaves: &[],
    },
    Run {
        file: "cli/jobs/single-step/tensorflow/mnist/job.yml",
        software: TENSORFLOW,
        sets: &[],
        beside: &[("src/train.py", include_str!("scripts/digits_keras.py"))],
        log: &["tensorflow 2.16", "2 epochs"],
        leaves: &[],
    },
    Run {
        file: "cli/jobs/single-step/pytorch/word-language-model/job.yml",
        software: TORCH,
        sets: &[],
        beside: &[
            ("src/main.py", include_str!("scripts/word_model.py")),
            ("data/train.txt", "a falcon stoops and a falcon climbs and a falcon stoops again\n"),
        ],
        log: &["Transformer over 6 words: loss fell is True"],
        leaves: &[("artifacts/outputs/model.pt", "")],
    },
    Run {
        file: "cli/jobs/single-step/pytorch/cifar-distributed/job.yml",
        software: TORCH,
        // Two ranks on one node in place of two nodes with one each.
        sets: &[ONE_NODE, TWO_RANKS],
        beside: &[("src/train.py", include_str!("scripts/ranks_torch.py"))],
        log: &["rank 0 of 2: sum 3, lr 0.2", "rank 1 of 2: sum 3, lr 0.2", "batch-1"],
        leaves: &[],
    },
    Run {
        file: "cli/jobs/single-step/r/accidents/job.yml",
        software: BUILD,
        // R comes with the image alone; a Python script of ours reads the same input.
        sets: &["command=python said.py ${{inputs.training_data}}"],
        beside: &[("src/said.py", SAID), ("data/accidents.csv", "dead\n"), DOCKERFILE],
        log: &["folder: accidents.csv"],
        leaves: &[],
    },
    Run {
        file: "cli/jobs/single-step/r/iris/job.yml",
        software: BUILD,
        sets: &["command=python said.py ${{inputs.iris}}", "inputs.iris.path=iris.csv"],
        beside: &[("src/said.py", SAID), ("iris.csv", IRIS), DOCKERFILE],
        log: &["file: sepal_length"],
        leaves: &[],
    },
    Run {
        file: "cli/jobs/single-step/dask/nyctaxi/job.yml",
        software: "curated sklearn-1.5, since its conda file needs conda for Dask",
        sets: &[
            "environment=azureml://registries/azureml/environments/sklearn-1.5/labels/latest",
            "inputs.nyc_taxi_dataset.path=taxi",
            ONE_NODE,
        ],
        beside: &[("src/startDask.py", SAID), ("taxi/trips.csv", "fare\n")],
        log: &["--script prep-nyctaxi.py", "folder: trips.csv", "RANK=0"],
        leaves: &[("named-outputs/output_folder/startDask.py-0.txt", "--script")],
    },
    Run {
        file: "cli/jobs/single-step/on-behalf-of/job.yaml",
        software: "its own image and a conda file of ours",
        sets: &["inputs.iris_csv.path=iris.csv"],
        beside: &[("src/aml_run.py", SAID), ("iris.csv", IRIS), ("environment/conda.yml", SMALL)],
        log: &["--C 0.8 --kernel rbf --coef0 0.1", "file: sepal_length"],
        leaves: &[],
    },
    Run {
        file: "cli/jobs/single-step/gpu_perf/gpu_perf_job.yml",
        software: "an image of ours, since the file names another file where an environment belongs",
        sets: &["environment={image: python:3.12-slim}"],
        beside: &[("src/gpu_perf.sh", "python said.py perf\n"), ("src/said.py", SAID)],
        log: &["told: perf", "OMPI_COMM_WORLD_RANK=0", "NCCL_DEBUG=INFO"],
        leaves: &[],
    },
    Run {
        file: "cli/jobs/nebulaml/cifar10_deepspeed/job.yml",
        software: "curated sklearn-1.5, since the file leaves a blank to fill in",
        sets: &["environment=azureml://registries/azureml/environments/sklearn-1.5/labels/latest", ONE_NODE, TWO_RANKS],
        beside: &[("src/cifar10_deepspeed.py", SAID), ("src/ds_config.json", "{}\n")],
        log: &["scikit-learn", "--global_rank 0", "--global_rank 1", "WORLD_SIZE=2"],
        leaves: &[("named-outputs/output/cifar10_deepspeed.py-1.txt", "--deepspeed")],
    },
    Run {
        file: "best-practices/largescale-deep-learning/Debugging/Compute/health_job.yaml",
        software: IMAGE,
        // Without `sudo`, which this machine may not have, and its log as a volume.
        sets: &["command=bash setup_nhc.sh", "resources.docker_args="],
        beside: &[("setup_nhc.sh", "echo checks with $NHC_ARGS in $AZ_NHC_ROOT as rank $RANK\n")],
        log: &["checks with -v -d -a in /azure-nhc/ as rank 0"],
        leaves: &[],
    },
    Run {
        file: "best-practices/largescale-deep-learning/Training/Bert-Pretrain/AML-submit.yml",
        software: BUILD,
        sets: &[ONE_NODE, TWO_RANKS],
        beside: &[("src/pretrain_glue.py", SAID)],
        log: &["--local_rank 0", "--local_rank 1", "--model_checkpoint bert-large-uncased", "WORLD_SIZE=2"],
        leaves: &[("named-outputs/output/pretrain_glue.py-0.txt", "--num_train_epochs 100")],
    },
    Run {
        file: "best-practices/largescale-deep-learning/Training/Bert-Pretrain/AML-DeepSpeed-submit.yml",
        software: BUILD,
        sets: &[ONE_NODE, TWO_RANKS],
        beside: &[("src/pretrain_glue_ORT.py", SAID)],
        log: &["--optim adamw_ort_fused", "WORLD_SIZE=2"],
        leaves: &[("named-outputs/output/pretrain_glue_ORT.py-1.txt", "--deepspeed")],
    },
    Run {
        file: "best-practices/largescale-deep-learning/Training/Bloom-Pretrain/src/deepspeed-BLOOM-AML-SDKv2.yaml",
        software: BUILD,
        sets: &[TWO_RANKS],
        beside: &[("Megatron-DeepSpeed/pretrain_gpt.py", SAID)],
        log: &["--split 90,5,5", "type:transformer|embedding", "RANK=1"],
        leaves: &[("named-outputs/output/pretrain_gpt.py-0.txt", "--hidden-size 14336")],
    },
];
