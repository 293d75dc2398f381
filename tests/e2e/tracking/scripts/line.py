"""Fits a line with PyTorch Lightning. Nothing here knows of Peregrine: MLflow logs by itself."""
import mlflow
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset


class Line(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, _):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.layer(x), y)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


mlflow.pytorch.autolog()
x = torch.linspace(-1, 1, 256).reshape(-1, 1)
data = DataLoader(TensorDataset(x, 3 * x + 1), batch_size=32)
pl.Trainer(max_epochs=5, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False).fit(Line(), data)
