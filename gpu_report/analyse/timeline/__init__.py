"""What YOLO was doing when: epochs, phases, trainings and their ranks, and which of it was undisturbed."""
