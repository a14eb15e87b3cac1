"""The Helm chart's typed side: values as models, and the files of the chart that are generated from them."""

from rollstream_control.chart.dashboard import dashboard
from rollstream_control.chart.schema import values_schema
from rollstream_control.chart.values import ChartValues

__all__ = ["ChartValues", "dashboard", "values_schema"]
