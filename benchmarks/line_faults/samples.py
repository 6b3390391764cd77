"""Data sets whose samples come too slowly, each at the line marked `# slow: NAME`; they run in the loader's workers."""

import json
import multiprocessing
import os
import random
import time

import cv2
import numpy as np

ANNOTATIONS = os.environ.get("ANNOTATIONS", "/tmp/annotations.json")
file_lock = multiprocessing.Lock()
known_labels = []


# Kinds that the rules know.


def fetch(index):
    time.sleep(0.08)  # slow: w-sleep


def read_shared_file(index):
    with file_lock:  # slow: w-lock
        time.sleep(0.02)


# Kinds that no rule was written for.


def fetch_with_retries(index):
    if index % 300 == 7:
        for attempt in range(3):
            time.sleep(0.5 * 2**attempt)  # slow: one-slow-sample


def stitch_panorama(index):
    if index % 160 == 7:
        image = np.random.default_rng(0).integers(0, 255, (3000, 6000, 3), dtype=np.uint8)
        for _ in range(3):
            image = cv2.bilateralFilter(image, 9, 75, 75)  # slow: one-large-sample


def find_annotation(index):
    with open(ANNOTATIONS) as file:
        return json.load(file)[index % 1000]  # slow: parse-each-time


def load_vocabulary(worker):
    known_labels[:] = sorted(str(random.Random(n).random()) for n in range(900_000))  # slow: renew-loader
