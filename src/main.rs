use std::process::ExitCode;

fn main() -> ExitCode {
    prism_judge::cli::main()
}
