"""A benchmark that anyone can repeat: `make bench` for all of it.

Each workload is run by tformer and by what a reader would take instead: torch's own
modules, Hugging Face's, x-transformers, and forms written in a few plain lines. Their
outputs must agree first. Then they run in turn, round after round, on one machine.

__main__     the options, and the file that is written
workload     what a workload and a contender are
measuring    whether outputs agree, time in turn, peak memory
report       the file: rows, machine, versions, commit, command
peers/       other people's modules with our weights, and the plain forms
workloads/   what is measured, a family a file
"""
