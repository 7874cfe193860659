"""The main job on a real pipeline, run by ``make demo``. Not part of the installed package."""
