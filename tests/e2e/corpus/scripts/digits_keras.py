import numpy
import tensorflow

numpy.random.seed(7)
x = numpy.random.rand(64, 28, 28)
y = (x.mean(axis=(1, 2)) > 0.5).astype("int32")
model = tensorflow.keras.Sequential([tensorflow.keras.layers.Flatten(), tensorflow.keras.layers.Dense(2)])
model.compile(optimizer="adam", loss=tensorflow.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
history = model.fit(x, y, epochs=2, verbose=0)
print(f"tensorflow {tensorflow.__version__}: {len(history.history['loss'])} epochs")
