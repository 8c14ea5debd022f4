mod mode;
