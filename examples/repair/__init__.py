"""Repair tasks made from HumanEval: each problem's solution with one fault put in."""
