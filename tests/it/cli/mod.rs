mod doctor;
mod exit;
mod ext;
mod json_parity;
mod launcher;
mod pi_test;
mod pi_test_failures;
mod print;
