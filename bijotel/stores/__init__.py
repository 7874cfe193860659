"""Where chains are kept. One module for each engine, one contract for all (``base``)."""
