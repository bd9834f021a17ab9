"""Recall measured without a model as a judge: the data, the contenders and the measures."""
