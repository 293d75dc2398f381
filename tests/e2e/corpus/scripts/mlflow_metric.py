import mlflow

with mlflow.start_run() as run:
    mlflow.log_metric("hello", 42)
value = mlflow.get_run(run.info.run_id).data.metrics["hello"]
print(f"mlflow {mlflow.__version__}: hello = {value}")
