//! Random histories, scripts, cancels, storage faults and compactions.
