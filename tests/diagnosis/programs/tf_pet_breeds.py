"""Fine-tune a classifier of pet breeds on images that tf.data decodes, resizes and caches."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.diagnosis.pair import Pair
from tests.diagnosis.tensorflow_files import take_profile

SIZE, BATCH, IMAGES = 128, 8, 16

PAIR = Pair(
    fault="cache() stands after repeat(), so the cache takes new copies of the images for ever",
    about="memory",
    kind="leak|cache",
    culprit="resize|ResizeBilinear|MemoryCache",
    magnitude=BATCH * SIZE * SIZE * 3 * 4,
    savings="older_copy|leak|release|offload|precision",
    environment={"TF_ENABLE_ONEDNN_OPTS": "0", "TF_CPU_ALLOCATOR_USE_BFC": "1"},
    round=3,
)


def record(folder: Path, *, faulty: bool) -> dict:
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(12)
    Path("images").mkdir(exist_ok=True)
    for number in range(IMAGES):
        pixels = rng.integers(0, 256, (8, 8, 3), np.uint8).repeat(16, 0).repeat(16, 1)
        tf.io.write_file(f"images/breed{number % 6}_{number:03}.jpg", tf.io.encode_jpeg(pixels))

    def load_image(path):
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        image = tf.image.resize(tf.image.convert_image_dtype(image, tf.float32), [SIZE, SIZE])
        name = tf.strings.split(path, "/")[-1]
        return image, tf.strings.to_number(tf.strings.substr(name, 5, 1), tf.int32)

    def make_dataset():
        files = tf.data.Dataset.list_files("images/*.jpg", shuffle=False)
        images = files.map(load_image, num_parallel_calls=2)
        images = images.repeat().cache() if faulty else images.cache().repeat()
        return images.batch(BATCH, drop_remainder=True).prefetch(1)

    class BreedClassifier(tf.Module):
        def __init__(self, breeds=6):
            super().__init__()
            normal = tf.random.stateless_normal
            self.backbone = tf.constant(normal([8, 8, 3, 32], [1, 1]) * 0.1)
            self.kernel = tf.Variable(normal([32, breeds], [1, 2]) * 0.1, name="head/kernel")
            self.bias = tf.Variable(tf.zeros([breeds]), name="head/bias")

        @tf.function
        def train_step(self, images, breeds):
            with tf.name_scope("backbone"):
                maps = tf.nn.relu(tf.nn.conv2d(images, self.backbone, 8, "VALID"))
                features = tf.reduce_mean(maps, [1, 2])
            with tf.GradientTape() as tape:
                logits = features @ self.kernel + self.bias
                loss = tf.nn.sparse_softmax_cross_entropy_with_logits(breeds, logits)
                loss = tf.reduce_mean(loss)
            for variable, gradient in zip(
                (self.kernel, self.bias), tape.gradient(loss, (self.kernel, self.bias)), strict=True
            ):
                variable.assign_sub(0.05 * gradient)
            return loss

    model = BreedClassifier()
    batches = iter(make_dataset())
    seconds = []
    for step in range(12):
        if step == 4:
            tf.profiler.experimental.start("logs")
        begin = time.perf_counter()
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            model.train_step(*next(batches)).numpy()
        seconds.append(time.perf_counter() - begin)
    tf.profiler.experimental.stop()
    take_profile("logs", folder / "worker0.xplane.pb")
    one = BATCH * SIZE * SIZE * 3 * 4
    return {
        "steps": 8,
        "median_step_s": statistics.median(seconds[1:4]),
        "bytes_per_step": one if faulty else 0,
        "cached_bytes": 12 * one if faulty else IMAGES // BATCH * one,
    }
